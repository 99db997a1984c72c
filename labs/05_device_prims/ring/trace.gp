# TRACE=TRACE.json gnuplot -c trace.gp PICTURE.svg: draws the first two channels of a file of
# `05_device_prims ring --trace`. A box is a slice; a red line leads from the end of a step's slice
# at the sender to the receiver's slice: to its start, or to its end if it started before. jq reads
# the JSON. With ORDER=1 the beginnings and ends of slices are spaced evenly, in their order: for
# emulated GPUs, whose times mean nothing.

jq(columns) = system(sprintf("jq -r '[.traceEvents[] | select(.ph == \"X\" and .tid < 2) " . \
    "| .end = .ts + .dur] as $timed | ([$timed[].pid] | max + 1) as $ranks " . \
    "| ([$timed[] | .ts, .end] | unique | [to_entries[] | {(.value | tostring): .key}] | add) " . \
    "as $place | ($timed | if env.ORDER == \"1\" then " . \
    "map((.ts, .end) |= $place[tostring]) else . end) as $slices " . \
    "| def row: .tid * ($ranks + 0.5) + .pid; %s | @tsv' <\"$TRACE\"", columns))
set print $boxes
print jq('$slices[] | [.ts, .end, row, "channel \(.tid), rank \(.pid)", ' . \
         '(if .name == "wait for data" then 14540253 ' . \
         'elif .name == "wait for space" then 16036227 ' . \
         'elif .name | test("recv") | not then 11771355 ' . \
         'elif .name | test("reduce") then 9090280 else 10275976 end), .name]')
set print $steps
print jq('([$slices[] | select(.name | test("recv")) ' . \
         '| {"\(.pid) \(.tid) \(.args["step received"])": .}] | add) as $receivers ' . \
         '| $slices[] | select(.name | test("send")) | . as $sender ' . \
         '| $receivers["\(.args["to rank"]) \(.tid) \(.args["step sent"])"] ' . \
         '| select(. != null) ' . \
         '| [($sender | .end, row), (if .ts >= $sender.end then .ts else .end end), row]')
unset print

set datafile separator "\t"
stats $boxes using 3 name "row" nooutput
stats $boxes using 2 name "end" nooutput
set terminal svg size 1200,80 + 26 * (row_max + 1) font "sans-serif,11"
set output ARG1
set yrange [row_max + 0.6:-0.6]
set xrange [0:*]
set border linecolor "#767d86"
set tics textcolor "#767d86"
set xlabel (system("echo $ORDER") eq "1" ? "events, in order" : "microseconds") textcolor "#767d86"
set grid xtics linecolor "#b0808080"
set key outside top left horizontal Left reverse samplen 2 maxrows 1 textcolor "#767d86"
set style fill solid border linecolor "#555555"
plot $boxes using 1:3:1:2:($3 - 0.38):($3 + 0.38):5:ytic(4) with boxxyerror linecolor rgb variable \
         notitle, \
     $boxes using ($2 - $1 > 0.007 * strlen(stringcolumn(6)) * end_max ? ($1 + $2) / 2 : NaN):3:6 \
         with labels notitle, \
     $steps using 1:2:($3 - $1):($4 - $2) with vectors nohead linecolor rgb "#e03131" notitle, \
     NaN with boxes linecolor rgb "#dddddd" title "wait for data", \
     NaN with boxes linecolor rgb "#f4b183" title "wait for space", \
     NaN with boxes linecolor rgb "#b39ddb" title "send", \
     NaN with boxes linecolor rgb "#8ab4e8" title "receive and reduce", \
     NaN with boxes linecolor rgb "#9ccc88" title "receive and pass on"
