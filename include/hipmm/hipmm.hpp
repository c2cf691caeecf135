/* SPDX-License-Identifier: MIT */
/* hipmm/hipmm.hpp: hipmm for C++17 and later, header only, over the C interface.
 *
 *     #include <hipmm/hipmm.hpp>
 *     int main()
 *     {
 *       hipmm::library library{"hipmm.json"};                     // initialises; the destructor finalizes
 *       hipmm::stream stream{0};
 *       hipmm::vector<float> values{1000, stream};                // from the current resource, not initialised
 *       values.set_element(0, 1.5F, stream);
 *       return values.element(0, stream) == 1.5F ? 0 : 1;
 *     }
 *
 * Objects own the things that they name, and give them back when they are destroyed. Moves and destructors never throw;
 * other functions throw hipmm::error, or hipmm::bad_alloc when memory is exhausted. Both carry the record of the C
 * interface. The conventions of hipmm.h hold: sizes are in bytes unless a comment says elements, a default-constructed
 * hipmm::resource is the current device's current resource, and all functions are thread-safe as long as one thread at a
 * time uses an object.
 *
 * The headers name no type of HIP or CUDA: a hipStream_t and a cudaStream_t convert to hipmm::stream_ref. They compile
 * beside either runtime's headers, before and after them. */
#ifndef HIPMM_HIPMM_HPP
#define HIPMM_HIPMM_HPP

#include <hipmm/cpp/allocator.hpp>
#include <hipmm/cpp/buffer.hpp>
#include <hipmm/cpp/error.hpp>
#include <hipmm/cpp/graph.hpp>
#include <hipmm/cpp/growing_vector.hpp>
#include <hipmm/cpp/library.hpp>
#include <hipmm/cpp/movable.hpp>
#include <hipmm/cpp/object.hpp>
#include <hipmm/cpp/reservation.hpp>
#include <hipmm/cpp/resource.hpp>
#include <hipmm/cpp/stream.hpp>
#include <hipmm/cpp/vector.hpp>

#endif
