package main

import . "github.com/mmcloughlin/avo/build"

// doubles are multiplied in tiles of 6 rows by 8 columns: twelve sums are as many as hide what an
// addition waits for, and leave four registers.
var doubles = numbers{"double", "*float64", "*float64", "*float64", 8, VBROADCASTSD, VFMADD231PD, VADDPD}

func doubleFamily() {
	tile{6, 8, ymm, doubles}.emit()
}
