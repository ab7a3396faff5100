package sparse

// Auto gives each weight the form that is smallest in the file, and leaves dense what
// would grow.
var Auto = withBlocks("auto", "the smallest form for each weight", newDelta, newBitmask, newCSR, newBSR, newCOO)
