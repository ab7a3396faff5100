package pass

// slowdowns are the measured ones, written by `make compat`.
var slowdowns = []slowdown{
	{"dynamic-int8", nil, "openvino", 0.80, 0.45},
	{"dynamic-int8", nil, "tract", 0.78, 0.45},
	{"static-int8", nil, "opencv", 0.87, 0.83},
	{"static-int8", nil, "tract", 0.73, 0.59},
	{"weight-int8", nil, "web", 0.89, 0.24},
	{"weight-int8", []Option{{Name: "form", Value: "matmulnbits"}}, "web", 0.89, 0.09},
	{"weight-int4", nil, "web", 0.66, 0.02},
	{"weight-int4", nil, "tract", 0.88, 0.06},
	{"weight-int4", []Option{{Name: "form", Value: "matmulnbits"}}, "ort-1.17", 0.81, 0.12},
	{"weight-int4", []Option{{Name: "form", Value: "matmulnbits"}}, "web", 0.46, 0.00},
	{"weight-int2", nil, "ort-1.17", 0.84, 0.12},
	{"weight-int2", nil, "web", 0.78, 0.08},
	{"float16", nil, "opencv", 0.82, 0.37},
	{"float16", []Option{{Name: "compute", Value: "float16"}}, "ort-1.17", 0.44, 0.11},
	{"float16", []Option{{Name: "compute", Value: "float16"}}, "ort-1.20", 0.53, 0.33},
	{"float16", []Option{{Name: "compute", Value: "float16"}}, "ort-1.22", 0.55, 0.28},
	{"float16", []Option{{Name: "compute", Value: "float16"}}, "tract", 0.30, 0.01},
}
