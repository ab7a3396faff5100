package pass

// slowdowns are the measured ones, written by `make compat`.
var slowdowns = []slowdown{
	{"dynamic-int8", nil, "web", 0.68, 0.18},
	{"dynamic-int8", nil, "openvino", 0.80, 0.49},
	{"dynamic-int8", nil, "tract", 0.29, 0.04},
	{"static-int8", nil, "opencv", 0.84, 0.37},
	{"static-int8", nil, "tract", 0.85, 0.73},
	{"weight-int8", []Option{{Name: "form", Value: "matmulnbits"}}, "web", 0.47, 0.11},
	{"weight-int4", []Option{{Name: "form", Value: "matmulnbits"}}, "web", 0.71, 0.05},
	{"float16", []Option{{Name: "compute", Value: "float16"}}, "ort-1.17", 0.45, 0.11},
	{"float16", []Option{{Name: "compute", Value: "float16"}}, "ort-1.20", 0.50, 0.37},
	{"float16", []Option{{Name: "compute", Value: "float16"}}, "ort-1.22", 0.57, 0.33},
	{"float16", []Option{{Name: "compute", Value: "float16"}}, "web", 0.79, 0.05},
	{"float16", []Option{{Name: "compute", Value: "float16"}}, "tract", 0.31, 0.01},
}
