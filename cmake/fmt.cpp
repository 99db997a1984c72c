// fmt 9.1 to 12 as a static library. Debian and Ubuntu have only a shared one, which may be missing
// on a machine that a program is copied to. As a header-only library, fmt costs two seconds of
// compile time per file, and scenes would contain its throw statements, which the explorer refuses.
// Below are the templates that its headers expect in the library.

#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
#if FMT_VERSION < 120000
namespace detail {
#endif
template FMT_API locale_ref::locale_ref(const std::locale&);
template FMT_API auto locale_ref::get<std::locale>() const -> std::locale;
#if FMT_VERSION >= 120000
namespace detail {
#endif
template FMT_API auto dragonbox::to_decimal(float) noexcept -> dragonbox::decimal_fp<float>;
template FMT_API auto dragonbox::to_decimal(double) noexcept -> dragonbox::decimal_fp<double>;
template FMT_API auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;
template FMT_API void buffer<char>::append(const char*, const char*);
#if FMT_VERSION < 100000
template FMT_API void vformat_to(buffer<char>&, string_view,
                                 basic_format_args<FMT_BUFFER_CONTEXT(char)>, locale_ref);
#elif FMT_VERSION < 120000
template FMT_API void vformat_to(buffer<char>&, string_view, typename vformat_args<>::type,
                                 locale_ref);
#endif
}  // namespace detail
FMT_END_NAMESPACE
