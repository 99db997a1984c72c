# ROWS=ROWS.json gnuplot -c plot.gp NAME: draws NAME_latency.svg and NAME_bandwidth.svg from the rows
# of 06_allreduce_bench --json: calls out of place. jq reads the JSON. A variable names the file,
# since gnuplot passes commands to a shell. Without a background, and in colors that can be read on
# white and on black.

jq(filter) = system(sprintf("jq -r '%s' <\"$ROWS\"", filter))

# The columns: bytes, then us per call for each of the five lines. The last one is in the latency
# picture only.
set print $rows
print jq('.benchmarks[] | select(.run_type == "iteration") | [.bytes, .out_nccl_us, ' . \
         '.out_nccl_symmetric_us, .limit_us, .out_us, .smallest_us] | map(. // "nan") | @tsv')
unset print
lines = jq('any(.benchmarks[]; .limit_us)') eq "true" ? "1 2 3 4" : "1 2 4"
has_smallest = jq('any(.benchmarks[]; .smallest_us)') eq "true"
array line[5] = ["NCCL", "NCCL symmetric", "limit of the links", "ours", "one trip and a launch"]
set style line 1 linewidth 2 linecolor "#d95f02" pointtype 5 pointsize 0.5
set style line 2 linewidth 2 linecolor "#1b9e77" pointtype 9 pointsize 0.6
set style line 3 linewidth 2 linecolor "#808080" pointtype -1 dashtype 2
set style line 4 linewidth 3 linecolor "#3d7fe0" pointtype 7 pointsize 0.5
set style line 5 linewidth 1 linecolor "#808080" pointtype -1

ranks = int(jq('.benchmarks[0].ranks'))
trips = jq('.context.collective') eq "AllReduce" ? 2 : 1
what = jq('"\(.context.collective), \(.benchmarks[0].ranks) GPUs, \(.context.datatype), \(.context.op), ' . \
          'out of place" + if .context.nccl == "" then "" else ", compared with NCCL \(.context.nccl)" end')
set terminal svg size 800,480 font "sans-serif,14"
set key left top reverse Left textcolor "#767d86"
set border linecolor "#767d86"
set tics textcolor "#767d86"
set grid linecolor "#b0808080"
set xlabel "bytes per rank" textcolor "#767d86"
set logscale x 2
set xtics ()
do for [i = 0:40:2] {
    set xtics add (sprintf("%d%s", 2 ** (i % 10), "KMGT"[i / 10:i / 10]) 2.0 ** i)
}
set yrange [0:*]
stats $rows using 1 name "bytes" nooutput

if (bytes_min < 2 ** 20) {
    set output ARG1 . "_latency.svg"
    set title what . ": latency" textcolor "#767d86"
    set ylabel "us per call" textcolor "#767d86"
    set xrange [bytes_min:2 ** 20]
    plot for [i in lines . (has_smallest ? " 5" : "")] $rows using 1:(column(i + 1)) \
         with linespoints linestyle int(i) title line[int(i)]
}
set output ARG1 . "_bandwidth.svg"
set title what . ": bus bandwidth" textcolor "#767d86"
set ylabel "GB/s" textcolor "#767d86"
set xrange [bytes_min:1.01 * bytes_max]
plot for [i in lines] $rows using 1:($1 * trips * (ranks - 1) / ranks / column(i + 1) * 1e-3) \
     with linespoints linestyle int(i) title line[int(i)]
