package grad

var linear = []Rule{}
