/* SPDX-License-Identifier: MIT */
/* test.hpp: what the tests of the C++ headers share. A test is a function; CHECK throws, so the rest of a failed test does
 * not run. The names of hipmm are written in full: the tests show how a user writes them. */
#ifndef HIPMM_TESTS_CPP_TEST_HPP
#define HIPMM_TESTS_CPP_TEST_HPP

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#define TEXT_OF(line) #line
#define LINE_OF(line) TEXT_OF(line)
#define CHECK(condition)                                                                        \
  do {                                                                                          \
    if (!(condition)) throw std::runtime_error{__FILE__ ":" LINE_OF(__LINE__) ": " #condition}; \
  } while (0)

/* The statement throws an Exception whose message contains the text. */
#define CHECK_THROWS(Exception, text, ...)                                                                          \
  do {                                                                                                              \
    bool is_thrown = false;                                                                                         \
    try {                                                                                                           \
      __VA_ARGS__;                                                                                                  \
    } catch (const Exception &thrown) {                                                                             \
      is_thrown = true;                                                                                             \
      if (std::string{thrown.what()}.find(text) == std::string::npos)                                               \
        throw std::runtime_error{std::string{__FILE__ ":" LINE_OF(__LINE__) ": says "} + thrown.what()};            \
    }                                                                                                               \
    if (!is_thrown) throw std::runtime_error{__FILE__ ":" LINE_OF(__LINE__) ": nothing was thrown: " #__VA_ARGS__}; \
  } while (0)

struct test {
  const char *name;
  void (*run)();
};

/* The exit status of a program: whether a test failed. */
template <int Count> int run_tests(const test (&tests)[Count])
{
  int failed = 0;
  for (const test &each : tests) {
    try {
      each.run();
      std::printf("ok %s\n", each.name);
    } catch (const std::exception &problem) {
      std::printf("not ok %s: %s\n", each.name, problem.what());
      failed++;
    }
  }
  return failed != 0;
}

#endif
