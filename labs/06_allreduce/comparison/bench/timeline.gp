# ROWS=ROWS gnuplot -c timeline.gp PICTURE.svg: draws the rows of 06_allreduce_timeline. One line per
# stream of each GPU; one box per kernel or copy.

# Each row, with the number and the name of its line in front.
set print $rows
print system(sprintf("awk -F '\\t' -v OFS='\\t' '{ " . \
    "line = \"GPU \" $1 ($5 ? \" copies\" : \" kernels\"); " . \
    "if (!(line in at)) at[line] = 2 * $1 + ($5 > 0); " . \
    "print at[line], line, $3, $4, ($5 > 0), $6 }' <\"$ROWS\""))
unset print

set datafile separator "\t"
stats $rows using 1 name "line" nooutput
set terminal svg size 900,90 + 34 * (line_max + 1) font "sans-serif,13" background "white"
set output ARG1
set yrange [line_max + 0.6:-0.6]
set xrange [0:*]
set xlabel "us"
set grid xtics linecolor "#dddddd"
set style fill solid 0.8 border linecolor "white"
from(copies) = column(5) == copies ? column(3) : NaN
plot for [copies = 0:1] $rows using (from(copies)):1:(from(copies)):4:($1 - 0.35):($1 + 0.35):ytic(2) \
         with boxxyerror linecolor rgb (copies ? "#1b9e77" : "#1f4e9c") notitle, \
     $rows using (column(5) == 0 && column(4) - column(3) > 80 ? (column(3) + column(4)) / 2 : NaN) \
         :1:6 with labels textcolor "white" notitle
