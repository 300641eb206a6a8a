package bench

import (
	"bytes"
	"context"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/cursors"
	"github.com/bsonids/bsonids/uuidrep"
)

// clientOptions are the options of a client, in the three forms in which the cases set them.
type clientOptions struct {
	name   string
	client options.BSONOptions
	codec  bsoncodec.Options
	enc    func(*bson.Encoder)
	dec    func(*bson.Decoder)
}

// optionSets are the options that clients set which came from version 1 of the driver: none, each alone, and all.
func optionSets() []clientOptions {
	keepEncoder, keepDecoder := func(*bson.Encoder) {}, func(*bson.Decoder) {}
	sets := []clientOptions{
		{"none", options.BSONOptions{}, bsoncodec.Options{}, keepEncoder, keepDecoder},
		{"DefaultDocumentM", options.BSONOptions{DefaultDocumentM: true}, bsoncodec.Options{DefaultDocumentM: true},
			keepEncoder, (*bson.Decoder).DefaultDocumentM},
		{"ObjectIDAsHexString", options.BSONOptions{ObjectIDAsHexString: true}, bsoncodec.Options{ObjectIDAsHexString: true},
			keepEncoder, (*bson.Decoder).ObjectIDAsHexString},
		{"NilSliceAsEmpty", options.BSONOptions{NilSliceAsEmpty: true}, bsoncodec.Options{NilSliceAsEmpty: true},
			(*bson.Encoder).NilSliceAsEmpty, keepDecoder},
		{"UseJSONStructTags", options.BSONOptions{UseJSONStructTags: true}, bsoncodec.Options{UseJSONStructTags: true},
			(*bson.Encoder).UseJSONStructTags, (*bson.Decoder).UseJSONStructTags},
	}
	alone := sets[1:]
	return append(sets, clientOptions{
		"all",
		options.BSONOptions{DefaultDocumentM: true, ObjectIDAsHexString: true, NilSliceAsEmpty: true, UseJSONStructTags: true},
		bsoncodec.Options{DefaultDocumentM: true, ObjectIDAsHexString: true, NilSliceAsEmpty: true, UseJSONStructTags: true},
		func(enc *bson.Encoder) {
			for _, o := range alone {
				o.enc(enc)
			}
		},
		func(dec *bson.Decoder) {
			for _, o := range alone {
				o.dec(dec)
			}
		},
	})
}

// optionCases returns the cases of an order with the options of a client.
func optionCases() []Case {
	usual, ours := usualCodec(), registry(uuidrep.Standard)
	order := newPurchase()
	struct12 := typed("", order)
	toD := document{"", orderAs[bson.D](ours, order), func() any { return new(bson.D) }}
	toM := document{"", orderAs[bson.M](ours, order), func() any { return new(bson.M) }}
	server := sync.OnceValues(func() (string, error) {
		doc, err := bsoncodec.Marshal(ours, order)
		if err != nil {
			return "", err
		}
		return newMemoryServer(bson.A{bson.Raw(doc)})
	})
	var cases []Case
	for _, o := range optionSets() {
		for _, row := range []struct {
			work string
			run  func(impl, clientOptions) func(*testing.B)
		}{
			{"CursorDecode", func(m impl, o clientOptions) func(*testing.B) { return m.decodeStreamWith(struct12, o) }},
			{"Unmarshal", func(m impl, o clientOptions) func(*testing.B) { return m.unmarshalWith(struct12, o) }},
			{"Insert", func(m impl, o clientOptions) func(*testing.B) { return m.insertEncoding(struct12, o.enc) }},
			{"Marshal", func(m impl, o clientOptions) func(*testing.B) { return m.marshalWith(struct12, o) }},
			{"UnmarshalD", func(m impl, o clientOptions) func(*testing.B) { return m.unmarshalWith(toD, o) }},
			{"UnmarshalM", func(m impl, o clientOptions) func(*testing.B) { return m.unmarshalWith(toM, o) }},
		} {
			for _, m := range []impl{{"usual", usual, nil}, {"bsonids", ours, nil}} {
				cases = append(cases, Case{Work: "WholeOptions/" + row.work + "/" + o.name, Impl: m.name, Run: row.run(m, o)})
			}
		}
		cases = append(cases,
			Case{Work: "WholeOptions/One/" + o.name, Impl: "usual", Run: foundOne(server, usual, order, o,
				func(res *mongo.SingleResult, v *purchase) error { return res.Decode(v) })},
			Case{Work: "WholeOptions/One/" + o.name, Impl: "bsonids", Run: foundOne(server, ours, order, o,
				func(res *mongo.SingleResult, v *purchase) (err error) {
					*v, err = cursors.One[purchase](res)
					return err
				})})
	}
	return cases
}

// foundOne measures decode on a result that a client with the options o found on server.
func foundOne(
	server func() (string, error), reg *bson.Registry, order purchase, o clientOptions,
	decode func(*mongo.SingleResult, *purchase) error,
) func(*testing.B) {
	return func(b *testing.B) {
		uri, err := server()
		if err != nil {
			b.Fatal(err)
		}
		client, err := mongo.Connect(options.Client().ApplyURI(uri).SetRegistry(reg).SetBSONOptions(&o.client))
		if err != nil {
			b.Fatal(err)
		}
		ctx := context.Background()
		res := client.Database("db").Collection("orders").FindOne(ctx, bson.D{})
		if err := res.Err(); err != nil {
			b.Fatal(err)
		}
		_ = client.Disconnect(ctx)
		b.ReportAllocs()
		for b.Loop() {
			var v purchase
			if err := decode(res, &v); err != nil || v.Version != order.Version {
				b.Fatal(v, err)
			}
		}
	}
}

func (m impl) decodeStreamWith(doc document, o clientOptions) func(*testing.B) {
	return func(b *testing.B) {
		reg := m.registry()
		m.decode(b, doc, func(data []byte, v any) error {
			dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(data)))
			dec.SetRegistry(reg)
			o.dec(dec)
			return dec.Decode(v)
		})
	}
}

func (m impl) unmarshalWith(doc document, o clientOptions) func(*testing.B) {
	return func(b *testing.B) {
		reg := m.registry()
		m.decode(b, doc, func(data []byte, v any) error { return bsoncodec.Unmarshal(reg, data, v, o.codec) })
	}
}

func (m impl) marshalWith(doc document, o clientOptions) func(*testing.B) {
	return func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := bsoncodec.Marshal(m.reg, doc.value, o.codec); err != nil {
				b.Fatal(err)
			}
		}
	}
}
