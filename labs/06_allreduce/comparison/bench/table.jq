# jq -r --arg place out -f table.jq ROWS.json: the rows of 06_allreduce_bench --json as a table of
# docs/RESULTS.md, out of place (out) or in place (in).

def size: . as $bytes | first(
    [[1073741824, "G"], [1048576, "M"], [1024, "K"], [1, ""]][] | select($bytes % .[0] == 0)
    | "\($bytes / .[0])\(.[1])");
def fixed($digits): if . == null then "-" else
    pow(10; $digits) as $unit | . * $unit | round
    | "\(. / $unit | floor).\(. % $unit + $unit | tostring | .[1:])" end;
def algorithm:
    {oneshot: "packets", twoshot: "two shots", copy: "copy engine"}[.] // .;

"| bytes | algorithm | blocks | ours | bus | NCCL | NCCL symmetric | speedup |",
"|---:|---|---:|---:|---:|---:|---:|---:|",
(.benchmarks[] | select(.run_type == "iteration") | [
    (.bytes | size), (.label | algorithm), .blocks, (.[$place + "_us"] | fixed(1)),
    (.[$place + "_busbw"] | fixed(1)), (.[$place + "_nccl_us"] | fixed(1)),
    (.[$place + "_nccl_symmetric_us"] | fixed(1)), (.[$place + "_ratio"] | fixed(2))
] | "| \(join(" | ")) |")
