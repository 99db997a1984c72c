// A program that uses the library.
void launch_double_all(int* data);

int main() {
    launch_double_all(nullptr);
}
