//go:build never

package elsewhere

import "go.mongodb.org/mongo-driver/v2/bson"

func typeOf(a A) bson.Type {
	t, _, _ := a.MarshalBSONValue()
	return t
}
