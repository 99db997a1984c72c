#include <symm.h>

int main(void) {
    return symm_version() == SYMM_VERSION ? 0 : 1;
}
