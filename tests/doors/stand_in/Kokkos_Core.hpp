// SPDX-License-Identifier: MIT
// Kokkos_Core.hpp: what tests/example/kokkos_view.cpp needs of Kokkos: our own View over a pointer, and a loop.
#ifndef HIPMM_TESTS_DOORS_STAND_IN_KOKKOS_HPP
#define HIPMM_TESTS_DOORS_STAND_IN_KOKKOS_HPP

#include <cstddef>
#include <type_traits>

#define KOKKOS_LAMBDA [=]

namespace Kokkos
{

enum MemoryTraitsFlags { Unmanaged = 1 };
template <unsigned Flags> struct MemoryTraits {
};
struct HostSpace {
};
struct DefaultExecutionSpace {
  using memory_space = HostSpace;
};

template <typename Data, typename Space, typename Traits> class View
{
public:
  using value_type = std::remove_pointer_t<Data>;
  View() = default;
  View(value_type *data, std::size_t n) : m_data(data), m_n(n)
  {
  }
  template <typename Index> value_type &operator()(Index i) const
  {
    return m_data[i];
  }
  std::size_t size() const
  {
    return m_n;
  }

private:
  value_type *m_data = nullptr;
  std::size_t m_n = 0;
};

template <typename Function> void parallel_for(int n, const Function &function)
{
  for (int i = 0; i < n; i++) function(i);
}

inline void initialize(int &, char **)
{
}
inline void fence()
{
}
inline void finalize()
{
}

} // namespace Kokkos

#endif
