#!/usr/bin/env bash
# The parts of ./lab that build nothing: its help, and what it answers to bad usage.
set -u
lab="$1/lab"
failures=0

expect() {  # exit code, text to be found, arguments of ./lab
    local code=$1 text=$2 output status
    shift 2
    output=$("$lab" "$@" 2>&1)
    status=$?
    if [[ $status -ne $code || "$output" != *"$text"* ]]; then
        printf 'FAILED: ./lab %s: exit %d, wanted %d with "%s":\n%s\n' "$*" "$status" "$code" "$text" "$output"
        failures=$((failures + 1))
    fi
}

expect 2 'usage:'
expect 0 'run NN' help
expect 0 '06_allreduce' list
expect 2 "there is no lab '99'" run 99
expect 2 'say which lab' bench
expect 2 "there is no preset 'fast'" test --preset fast
expect 2 "there is no command 'dance'" dance
expect 2 'come behind --' run 06 4
exit "$failures"
