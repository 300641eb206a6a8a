package convert

import "slices"

// Value converts one value of a field, given as the bytes of a binary value from its subtype on, if
// the conversion applies to it. The field has several names if it is not known which of them it has,
// and the value is converted if its judge knows one of them. ok is false if the conversion does not
// apply; otherwise left is the reason for which the value is not converted, or "".
func (c Conversion) Value(fields []string, b []byte) (left string, ok bool) {
	if len(b) != 17 || b[0] != c.From.Subtype {
		return "", false
	}
	fields = slices.DeleteFunc(slices.Clone(fields), func(f string) bool { return !c.selectsField(f) })
	if len(fields) == 0 {
		return "", false
	}
	name := fields[0]
	for _, f := range fields {
		if c.Judge.Knows([]byte(f)) {
			name = f
			break
		}
	}
	old := [16]byte(b[1:])
	fresh := c.octets(old)
	if c.SameSubtype() && fresh == old {
		return "", false
	}
	if reason := c.Judge.Value([]byte(name), old); reason != "" {
		return reason, true
	}
	b[0] = c.To.Subtype
	copy(b[1:], fresh[:])
	return "", true
}

// selectsField is like Selects, for a name as walk.Path.AppendField writes it.
func (c Conversion) selectsField(field string) bool {
	if len(c.Fields) == 0 {
		return true
	}
	for _, f := range c.Fields {
		if f.MatchField(field) {
			return true
		}
	}
	return false
}
