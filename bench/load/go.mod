module ingot/bench/load

go 1.25
