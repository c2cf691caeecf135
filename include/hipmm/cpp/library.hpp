/* SPDX-License-Identifier: MIT */
/* hipmm/cpp/library.hpp: initialisation, versions and the log. */
#ifndef HIPMM_CPP_LIBRARY_HPP
#define HIPMM_CPP_LIBRARY_HPP

#include <hipmm/cpp/error.hpp>
#include <hipmm/cpp/graph.hpp>

#include <string>
#include <utility>

namespace hipmm
{

/* Initialises hipmm, and undoes this initialisation when it is destroyed. Initialisations are counted: several parts of
 * a program may have one each, of the same graph. Objects that own memory may outlive it. */
class library
{
public:
  /* From the file that HIPMM_CONFIG names, else ./hipmm.json, else the system's. */
  library()
  {
    check(::hipmm_init());
  }

  explicit library(const std::string &path)
  {
    check(::hipmm_init_from_file(path.c_str()));
  }
  explicit library(const graph &description)
  {
    check(::hipmm_init_from_string(description.json().c_str()));
  }

  [[nodiscard]] static library from_file(const std::string &path)
  {
    return library{path};
  }
  [[nodiscard]] static library from_string(const std::string &json)
  {
    check(::hipmm_init_from_string(json.c_str()));
    return library{initialised{}};
  }

  library(library &&other) noexcept : owns_{std::exchange(other.owns_, false)}
  {
  }
  library &operator=(library &&other) noexcept
  {
    std::swap(owns_, other.owns_);
    return *this;
  }
  ~library()
  {
    if (owns_) static_cast<void>(::hipmm_finalize());
  }

private:
  struct initialised {
  };
  explicit library(initialised) noexcept
  {
  }

  bool owns_ = true;
};

/* The library in use, as "major.minor.patch", and the runtime: "amd", "nvidia", "software" or a path. */
[[nodiscard]] inline std::string version()
{
  return ::hipmm_version();
}
[[nodiscard]] inline std::string runtime()
{
  const char *name = ::hipmm_runtime();
  return name ? name : "";
}

} // namespace hipmm

#endif
