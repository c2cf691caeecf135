/* SPDX-License-Identifier: MIT */
/* hipmm/cpp/error.hpp: shared by all classes: exceptions for failed calls of the C interface, and the owner of an
 * object of that interface. */
#ifndef HIPMM_CPP_ERROR_HPP
#define HIPMM_CPP_ERROR_HPP

#include <hipmm/hipmm.h>

#include <new>
#include <stdexcept>
#include <utility>

namespace hipmm
{

using status = ::hipmm_status;

/* The base of every exception of hipmm, and its content: catch `const hipmm::failure &` to catch them all. */
class failure
{
public:
  /* Copies the calling thread's record, if that is of this status. */
  explicit failure(status code) noexcept
  {
    record_.struct_size = sizeof record_;
    ::hipmm_last_error(&record_);
    if (record_.status == code) return;
    record_ = ::hipmm_error{};
    record_.struct_size = sizeof record_;
    record_.status = code;
  }

  [[nodiscard]] status code() const noexcept
  {
    return static_cast<status>(record_.status);
  }

  /* File, line, JSON path, resource, code of the runtime. */
  [[nodiscard]] const ::hipmm_error &record() const noexcept
  {
    return record_;
  }

  /* One line: where, what is wrong, what to do. */
  [[nodiscard]] const char *message() const noexcept
  {
    return record_.message[0] ? record_.message : ::hipmm_status_string(code());
  }

protected:
  failure(const failure &) = default;
  failure &operator=(const failure &) = default;
  ~failure() = default;

private:
  ::hipmm_error record_{};
};

/* All failures except out of memory. */
class error : public std::exception, public failure
{
public:
  explicit error(status code) noexcept : failure(code)
  {
  }
  [[nodiscard]] const char *what() const noexcept override
  {
    return message();
  }
};

/* HIPMM_E_OUT_OF_MEMORY and HIPMM_E_LIMIT. */
class bad_alloc : public std::bad_alloc, public failure
{
public:
  explicit bad_alloc(status code) noexcept : failure(code)
  {
  }
  [[nodiscard]] const char *what() const noexcept override
  {
    return message();
  }
};

/* Throws the exception for a status that is not HIPMM_OK. */
[[noreturn]] inline void throw_failure(status code)
{
  if (code == HIPMM_E_OUT_OF_MEMORY || code == HIPMM_E_LIMIT) throw bad_alloc{code};
  throw error{code};
}

inline void check(status code)
{
  if (code != HIPMM_OK) throw_failure(code);
}

namespace detail
{

/* Owns an object of the C interface, or none. A moved-from owner has none. */
template <typename Object, status (*Destroy)(Object *)> class owner
{
public:
  owner() noexcept = default;
  explicit owner(Object *owned) noexcept : object_{owned}
  {
  }
  owner(owner &&other) noexcept : object_{other.release()}
  {
  }
  /* What it had is destroyed at once. */
  owner &operator=(owner &&other) noexcept
  {
    owner taken{std::move(other)};
    std::swap(object_, taken.object_);
    return *this;
  }
  ~owner()
  {
    static_cast<void>(Destroy(object_));
  }

  [[nodiscard]] Object *get() const noexcept
  {
    return object_;
  }
  [[nodiscard]] Object *release() noexcept
  {
    return std::exchange(object_, nullptr);
  }

  /* For a function that creates one. Only of an owner that has none. */
  [[nodiscard]] Object **out() noexcept
  {
    return &object_;
  }

private:
  Object *object_ = nullptr;
};

} // namespace detail

} // namespace hipmm

#endif
