"""Tests of the protocols by which arrays are taken, or refused."""

import unittest

import numpy
from ranks import on_ranks, values


class Protocols(unittest.TestCase):

    def test_other_arrays(self):
        class OnlyDlpack:
            def __init__(self, array):
                self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__

        class WithStrides:
            def __init__(self, array):
                self.__array_interface__ = {**array.__array_interface__, "strides": array.strides}

        class BFloat16:  # as ml_dtypes spells it
            def __init__(self, array):
                self.__array_interface__ = {**array.view("int16").__array_interface__,
                                            "typestr": "<V2", "descr": [("", "<V2")]}

        def body(c):
            for kind in (OnlyDlpack, WithStrides):
                x = values(c.rank, (9, 1, 9), "float32")
                c.all_reduce(kind(x))
                c.synchronize()
                expected = values(0, x.shape, "float32") + values(1, x.shape, "float32")
                numpy.testing.assert_array_equal(x, expected)
            x = (values(c.rank, 9, "float32").view("int32") >> 16).astype("int16")
            c.all_reduce(BFloat16(x))
            c.synchronize()
            expected = values(0, 9, "float32") + values(1, 9, "float32")
            numpy.testing.assert_array_equal((x.astype("int32") << 16).view("float32"), expected)
        on_ranks(2, body)

    def test_refused_arrays(self):
        x = values(0, (4, 4), "float32")
        read_only = x.copy()
        read_only.flags.writeable = False

        class With:
            def __init__(self, **interface):
                self.__array_interface__ = {**x.__array_interface__, **interface}

        class OnGpu:
            __cuda_array_interface__ = {"shape": (4,), "typestr": "<f4", "data": (1, False)}

        class OtherDlpack:
            def __init__(self, array, device=1):
                self.array, self.device = array, device

            def __dlpack__(self, **keywords):
                return self.array.__dlpack__(**keywords)

            def __dlpack_device__(self):
                return self.device, 0

        def body(c):
            for error, says, array in (
                    (ValueError, "not contiguous", x[:, :2]),
                    (ValueError, "not contiguous", x.T),
                    (ValueError, "not contiguous", OtherDlpack(x.T)),
                    (ValueError, r"\(4, 4\) has 1 strides", With(strides=(4,))),
                    (ValueError, r"\(4, 4\) has 0 strides", With(strides=())),
                    (ValueError, "read-only", read_only),
                    (ValueError, "read-only", OtherDlpack(read_only)),
                    (TypeError, r"float32\(3.0\) is a scalar, .* pass numpy.array",
                     numpy.float32(3)),
                    (TypeError, "masked array", numpy.ma.masked_array(x, x > 1)),
                    (TypeError, "masked array", With(mask=x > 1)),
                    (TypeError, "list has neither", [1.0]),
                    (TypeError, "type complex64 are", x.astype("complex64")),
                    (TypeError, "type complex64 are", OtherDlpack(x.astype("complex64"))),
                    (TypeError, "type bool are", x > 1),
                    (TypeError, "type object are", x.astype(object)),
                    (TypeError, "type void16 are", numpy.zeros(3, "V2")),
                    (TypeError, "type void16 are",
                     numpy.zeros(3, [("a", "i1"), ("b", "i1")])),
                    (TypeError, "type <V2x are", With(typestr="<V2x")),
                    (TypeError, r"float32 \(big-endian\)", x.astype(">f4")),
                    (TypeError, "With has no address: pass numpy.asarray", With(data=b"1234")),
                    (TypeError, "on a GPU, but", OnGpu())):
                with self.assertRaisesRegex(error, says):
                    c.all_reduce(array)
            y = values(c.rank, (4,), "float32")
            c.all_reduce(y)  # it still works
            c.synchronize()
            self.assertEqual(y[0], 3)
        on_ranks(2, body)


if __name__ == "__main__":
    unittest.main()
