// Accesses that -fsanitize=thread leaves as they are. unseen.py must say of each what stands behind
// it, and nothing of the others. Nobody runs this.

#include <immintrin.h>

struct Rgb {
    unsigned char red, green, blue;
};
using Vector [[gnu::vector_size(32)]] = int;

void use(Rgb);
void use(long double);

void three_bytes(const Rgb* x) {
    use(*x);  // unseen: 24 bits
}
void ten_bytes(const long double* x) {
    use(*x);  // unseen: 80 bits
}
void vector(Vector* to, const Vector* from) {
    *to = *from;  // unseen: 256 bits
}
void assembly(int* x) {
    asm volatile("movl $7, (%0)" : : "r"(x) : "memory");  // unseen: asm
}
[[clang::no_sanitize("thread")]] void not_sanitized(int* x) {
    *x = 1;  // unseen: in a function that is not instrumented
}
void maximum(int* x) {
    __atomic_fetch_max(x, 3, __ATOMIC_RELAXED);  // unseen: atomicrmw
}
[[gnu::target("avx2")]] void gather(int* to, const int* from, const __m128i* at) {
    const __m128i all = _mm_i32gather_epi32(from, *at, 4);  // unseen: llvm.x86.avx2.gather.d.d
    *to = _mm_extract_epi32(all, 1);
}

void seen(int* x, long* y, const Vector* z, Rgb* to, const Rgb* from) {
    int own[4] = {*x};
    *y += own[*y % 4] + (*z)[1];
    *to = *from;
    __atomic_fetch_add(x, 1, __ATOMIC_RELEASE);
    asm volatile("" ::: "memory");
}
