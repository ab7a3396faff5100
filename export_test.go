package mcompress

// PlanDigest is the digest that makes a plan valid.
func PlanDigest(p *Plan) (string, error) { return p.digest() }
