/* SPDX-License-Identifier: MIT */
/* hipmm/cpp/library.hpp: initialisation, stacks of other graphs, and versions. */
#ifndef HIPMM_CPP_LIBRARY_HPP
#define HIPMM_CPP_LIBRARY_HPP

#include <hipmm/cpp/error.hpp>
#include <hipmm/cpp/graph.hpp>
#include <hipmm/cpp/resource.hpp>

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

  /* As library() if hipmm is not initialised; otherwise counts, whatever graph is in use. For libraries that allocate from
   * the program's resources. */
  [[nodiscard]] static library if_needed()
  {
    check(::hipmm_init_if_needed());
    return library{initialised{}};
  }

  library(library &&other) noexcept : owns_{std::exchange(other.owns_, false)}
  {
  }
  library &operator=(library &&other) noexcept
  {
    library taken{std::move(other)};
    std::swap(owns_, taken.owns_);
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

/* Another thread may change that at any time. */
[[nodiscard]] inline bool is_initialized() noexcept
{
  return ::hipmm_is_initialized() != 0;
}

/* The stack of a whole graph on one device, beside the stacks of the program's graph: for a library with its own graph.
 * hipmm need not be initialised. The stack lives as long as this object or a copy of its top. `name` is for the paths
 * of hipmm_list(); empty: "stack", "stack.2", … */
class stack
{
public:
  [[nodiscard]] static stack from_file(int device, const std::string &path, const std::string &name = {})
  {
    return stack{::hipmm_stack_build_from_file, device, path, name};
  }
  [[nodiscard]] static stack from_string(int device, const std::string &json, const std::string &name = {})
  {
    return stack{::hipmm_stack_build_from_string, device, json, name};
  }
  [[nodiscard]] static stack from_graph(int device, const graph &description, const std::string &name = {})
  {
    return from_string(device, description.json(), name);
  }

  /* The resource that the graph has for the device. */
  [[nodiscard]] const resource &top() const noexcept
  {
    return top_;
  }
  operator const resource &() const noexcept
  {
    return top_;
  }

private:
  using build_function = status (*)(int, const char *, const char *, ::hipmm_resource **);

  stack(build_function build, int device, const std::string &source, const std::string &name)
  {
    ::hipmm_resource *raw = nullptr;
    check(build(device, name.empty() ? nullptr : name.c_str(), source.c_str(), &raw));
    top_ = resource::adopt(raw);
  }

  resource top_;
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
