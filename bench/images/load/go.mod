module ingot/bench/images/load

go 1.25
