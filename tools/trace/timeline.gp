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
set terminal svg size 900,90 + 34 * (line_max + 1) font "sans-serif,13"
set output ARG1
set yrange [line_max + 0.6:-0.6]
set xrange [0:*]
set border linecolor "#767d86"
set tics textcolor "#767d86"
set xlabel "us" textcolor "#767d86"
set grid xtics linecolor "#b0808080"
set style fill solid border linecolor "#767d86"
from(copies) = column(5) == copies ? column(3) : NaN
plot for [copies = 0:1] $rows using (from(copies)):1:(from(copies)):4:($1 - 0.35):($1 + 0.35):ytic(2) \
         with boxxyerror linecolor rgb (copies ? "#1b9e77" : "#2f6fd0") notitle, \
     $rows using (column(5) == 0 && column(4) - column(3) > 130 ? (column(3) + column(4)) / 2 : NaN) \
         :1:6 with labels textcolor "white" notitle
