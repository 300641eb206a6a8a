package documents

import (
	"math"
	"math/big"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// AppendEqual appends a text that is the same for values that MongoDB takes for equal: numbers of different types may be, and so may
// text and symbols, and documents with equal fields in the same order.
func AppendEqual(b []byte, v bson.RawValue) []byte {
	const number, text, document, array, element, other = 1, 2, 3, 4, 5, 6
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128:
		return append(appendNumber(append(b, number), v), 0)
	case bson.TypeString, bson.TypeSymbol:
		return append(append(b, text), v.Value...)
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		elements, err := bson.Raw(v.Value).Elements()
		if err != nil {
			break
		}
		is := byte(document)
		if v.Type == bson.TypeArray {
			is = array
		}
		b = append(b, is)
		for _, e := range elements {
			b = append(append(append(b, element), e.Key()...), 0)
			b = AppendEqual(b, e.Value())
		}
		return append(b, 0)
	}
	return append(append(b, other, byte(v.Type)), v.Value...)
}

// appendNumber appends the same text for numbers that are equal.
func appendNumber(b []byte, v bson.RawValue) []byte {
	var r big.Rat
	switch v.Type {
	case bson.TypeDouble:
		f := v.Double()
		if n := int64(f); math.Abs(f) < 1<<53 && float64(n) == f { // most are
			return strconv.AppendInt(b, n, 10)
		}
		if r.SetFloat64(f) == nil { // NaN, or infinite
			return strconv.AppendFloat(b, f, 'g', -1, 64)
		}
	case bson.TypeDecimal128:
		d := v.Decimal128()
		n, exponent, err := d.BigInt()
		if err != nil {
			f := math.NaN()
			if sign := d.IsInf(); sign != 0 {
				f = math.Inf(sign)
			}
			return strconv.AppendFloat(b, f, 'g', -1, 64)
		}
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(exponent, -exponent))), nil)
		if exponent < 0 {
			r.SetFrac(n, scale)
		} else {
			r.SetInt(n.Mul(n, scale))
		}
	default:
		return strconv.AppendInt(b, v.AsInt64(), 10)
	}
	return append(b, r.RatString()...)
}
