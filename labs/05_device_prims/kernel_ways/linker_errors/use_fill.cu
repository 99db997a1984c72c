// A program that needs it for float.
#include "fill.hpp"

int main() {
    fill<<<1, 32>>>(static_cast<float*>(nullptr), 1.0F);
}
