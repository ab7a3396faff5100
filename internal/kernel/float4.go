package kernel

// E2M1 is the float of 4 bits: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.
var E2M1 = newSmallFloat(1, 1, 0x08, 0x07)
