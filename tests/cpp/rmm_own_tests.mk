# SPDX-License-Identifier: MIT
#
# What rmm_own_tests.sh builds, in its work folder, for DEVICE, software or gpu: RMM as DEVICE/lib/librmm.so, a library of
# GoogleTest, and a program in DEVICE/bin for each of RMM's tests. ONLY: the tests to build, if not all.

# Left out, since they take no resource, or are about what the stand-ins do not have:
#   bins that are added one by one, over resources of their own       binning_mr_tests
#   the decompression engine of CUDA's driver                         hwdecompress_tests
#   streams, macros for errors, the end of the process                cuda_stream*, error_macros_tests, process_is_*
#   what RMM itself does not build                                    cuda_async_view_mr_tests
left_out := mr/binning_mr_tests mr/cuda_async_view_mr_tests mr/hwdecompress_tests cuda_stream_tests \
	cuda_stream_pool_tests error_macros_tests process_is_exiting_tests
kernels := mr/system_mr_tests # need a GPU
ifeq ($(DEVICE),software)
left_out += $(kernels)
endif

sources := $(wildcard $(RMM)/tests/*_tests.c* $(RMM)/tests/mr/*_tests.c*)
tests := $(filter-out $(left_out),$(patsubst $(RMM)/tests/%,%,$(basename $(sources))))
ifneq ($(ONLY),)
tests := $(ONLY)
endif
programs := $(addprefix bin/,$(notdir $(tests)))

# RMM's library without the classes that hipmm stands in for. Since 26.08 each has a source of its own.
replaced := cuda managed pinned_host system pool arena fixed_size binning cuda_async cuda_async_managed
library := $(wildcard $(RMM)/src/*.cpp $(RMM)/src/mr/*.cpp $(RMM)/src/mr/detail/*.cpp)
library := $(filter-out $(foreach class,$(replaced),%/$(class)_memory_resource.cpp),$(library))
library := $(filter-out $(foreach class,$(replaced),%/$(class)_memory_resource_impl.cpp),$(library))

flags := -std=c++20 -O1 -w -fPIC -I$(TOP)/tests/cpp -I$(TOP)/include -I$(RMM) -I$(RMM)/include \
	-isystem $(PACKAGES)/librmm/include -isystem $(PACKAGES)/librmm/include/rapids \
	-isystem $(PACKAGES)/rapids_logger/include -DLIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE
loader := -Wl,-rpath,'$$ORIGIN/lib:$$ORIGIN/../lib:$$ORIGIN'
libraries := $(PACKAGES)/rapids_logger/lib64/librapids_logger.so $(BUILD)/.libs/libhipmm.so
compile := $(CXX) -Iover $(flags) -isystem $(CUDA)/include -MMD -c

# Objects of C++ serve both devices; those of .cu, and all that is linked, have a folder for each.
ifeq ($(DEVICE),software)
library := $(filter-out %/src/exec_policy.cpp,$(library))
compile_cu := $(subst -Iover,-Ion_host -Iover,$(compile)) -DTHRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP -x c++
cudart := $(DEVICE)/lib/libcudart.so.13
loader += -Wl,-rpath,$(BUILD)/.libs:$(PACKAGES)/rapids_logger/lib64
else
compile_cu := $(CUDA)/bin/nvcc -Iover $(subst -fPIC,-Xcompiler -fPIC,$(flags)) -arch=$(or $(CUDA_ARCH),sm_90) -MMD -c
cudart := $(CUDA)/lib64/libcudart.so
loader += -Wl,-rpath,'$$ORIGIN/../../../../lib:$$ORIGIN/../../../../../lib'
endif

all: $(addprefix $(DEVICE)/,$(programs))

.SECONDEXPANSION:
# RMM's files have names of their own in all folders.
kind = $(suffix $(wildcard $(RMM)/tests/$(1).c* $(RMM)/tests/mr/$(1).c*))
$(DEVICE)/bin/%: $$(if $$(filter .cu,$$(call kind,$$*)),$(DEVICE)/objects,objects)/$$*.o $(DEVICE)/lib/librmm.so \
		$(DEVICE)/lib/libtest.so
	@mkdir -p $(@D)
	$(CXX) -o $@ $< -L$(DEVICE)/lib -lrmm -ltest $(libraries) $(cudart) -lpthread $(loader)

vpath %.cpp $(RMM)/src $(RMM)/src/mr $(RMM)/src/mr/detail $(RMM)/tests $(RMM)/tests/mr
vpath %.cu $(RMM)/tests $(RMM)/tests/mr
objects/%.o: %.cpp
	@mkdir -p $(@D)
	$(compile) $< -o $@
$(DEVICE)/objects/%.o: %.cu
	@mkdir -p $(@D)
	$(compile_cu) $< -o $@
.SECONDARY:

$(DEVICE)/lib/librmm.so: $(patsubst %.cpp,objects/%.o,$(notdir $(library))) $(cudart)
	@mkdir -p $(@D)
	$(CXX) -shared -o $@ $^ $(libraries) $(loader)
$(DEVICE)/lib/libtest.so:
	@mkdir -p $(@D)
	$(CXX) -shared -o $@ -Wl,--whole-archive -lgtest -lgmock -lgtest_main -Wl,--no-whole-archive -lpthread
software/lib/libcudart.so.13: $(TOP)/tests/cpp/rmm_cudart.cpp
	@mkdir -p $(@D)
	$(CXX) -std=c++17 -Wall -Wextra -shared -fPIC -I$(CUDA)/include $< -Wl,-soname,libcudart.so.13 -o $@ -ldl

-include $(wildcard objects/*.d $(DEVICE)/objects/*.d)
