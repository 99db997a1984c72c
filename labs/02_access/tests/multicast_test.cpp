// The step with one address for the memory of all devices.

#include <gmock/gmock.h>

#include "common/cuda/check.hpp"
#include "common/cuda/driver.hpp"
#include "common/tests/needs.hpp"
#include "labs/02_access/multicast_object.hpp"
#include "labs/02_access/multicast_step.hpp"
#include "labs/02_access/tests/access_lab_test.hpp"

namespace symm {
namespace {

class MulticastStep : public AccessLabTest {
protected:
    static StepReport report() {
        const PeerMatrix matrix = PeerMatrix::query();
        return show_multicast({gpus(), matrix, 0, 4});
    }
};

TEST_F(MulticastStep, ReachesTheMemoryOfAllDevices) {
    SYMM_NEEDS(is_emulated());
    for (int again = 0; again < 2; ++again) {
        const StepReport seen = report();
        EXPECT_TRUE(seen.right);
        ASSERT_EQ(seen.lines.size(), 3U) << seen.lines.at(0);
        EXPECT_THAT(seen.lines[0], testing::HasSubstr("of 4 devices"));
        EXPECT_THAT(seen.lines[1], testing::HasSubstr("all devices had it"));
        EXPECT_THAT(seen.lines[2], testing::HasSubstr("the sum of all, 10"));
    }
}

TEST_F(MulticastStep, OfADeviceThatIsAddedTwice) {
    SYMM_NEEDS(is_emulated());
    const MulticastObject object = MulticastObject::create(2, MulticastObject::granularity(2));
    object.add(0);
    EXPECT_THAT([&] { object.add(0); },
                testing::ThrowsMessage<CudaError>(testing::HasSubstr("each device is added once")));
}

}  // namespace
}  // namespace symm
