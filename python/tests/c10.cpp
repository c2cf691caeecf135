/* SPDX-License-Identifier: MIT */
/* c10.cpp: the exceptions of PyTorch's library c10 as far as hipmm throws them, and a function that catches them as PyTorch
 * does: for test_frameworks.py. With ERROR_ALONE as in releases whose OutOfMemoryError has no constructor of its own. */
#include <exception>
#include <string>
#include <sys/types.h>

namespace c10
{

struct SourceLocation {
  const char *function, *file;
  unsigned line;
};

class Error : public std::exception
{
public:
  Error(SourceLocation where, std::string message);
  virtual const char *what() const noexcept override
  {
    return text.c_str();
  }

private:
  std::string text;
  std::string place;
};

class OutOfMemoryError : public Error
{
public:
#ifdef ERROR_ALONE
  using Error::Error;
#else
  OutOfMemoryError(SourceLocation where, std::string message);
#endif
  static int alive;
  virtual ~OutOfMemoryError()
  {
    alive--;
  }
};

int OutOfMemoryError::alive;

Error::Error(SourceLocation where, std::string message)
    : text(std::move(message)), place(std::string(where.file) + ":" + where.function)
{
}

#ifndef ERROR_ALONE
OutOfMemoryError::OutOfMemoryError(SourceLocation where, std::string message) : Error(where, std::move(message))
{
}
#endif

} // namespace c10

using allocate = void *(*)(ssize_t bytes, int device, void *stream);

/* What is thrown: "memory: ...", "runtime: ..."; or "" for an allocation. */
extern "C" const char *try_allocation(allocate function, ssize_t bytes)
{
  static std::string result;
  try {
    function(bytes, 0, nullptr);
    result.clear();
  } catch (const c10::OutOfMemoryError &error) {
    c10::OutOfMemoryError::alive++; /* its destructor takes this back */
    result = std::string("memory: ") + error.what();
  } catch (const std::exception &error) {
    result = std::string("runtime: ") + error.what();
  }
  return result.c_str();
}

extern "C" int count_alive()
{
  return c10::OutOfMemoryError::alive;
}

/* Where PyTorch throws one itself, and so what makes the compiler write its table. */
extern "C" void throw_one()
{
  throw c10::OutOfMemoryError({"throw_one", "c10.cpp", 1}, "none");
}
