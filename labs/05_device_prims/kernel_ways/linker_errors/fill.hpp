// A template kernel that is only declared here.
#pragma once
template <class T>
__global__ void fill(T* data, T value);
