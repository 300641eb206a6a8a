package session

import (
	"context"
	"fmt"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/privilege"
)

// Allowed asks the server whether the user may do what a verb that writes and those that come later need. It warns of
// what the user lacks for a later one. If write is set, the error names what the user lacks for the verb; it is a
// [*failure.Error], unless it is that of the context. In a rehearsal, it warns of this, too, and denied is the error that the
// verb would end with.
func (s *Session) Allowed(ctx context.Context, w privilege.Work, write bool, now privilege.Verb, later ...privilege.Verb) (denied, err error) {
	granted, err := privilege.Of(ctx, s.Client)
	if err != nil {
		return nil, err
	}
	lacks := make(map[privilege.Verb]string)
	for _, v := range append(later, now) {
		if text := granted.Lacks(v, w); text != "" {
			lacks[v] = fmt.Sprintf("the user lacks privileges for bsonids %s: %s", v, text)
		}
	}
	if len(lacks) == 0 {
		return nil, nil
	}
	if enforced, err := granted.Enforced(ctx, s.Client.Database(w.Database)); err != nil || !enforced {
		return nil, err
	}
	for _, v := range later {
		if lacks[v] != "" {
			s.Warn("%s", lacks[v])
		}
	}
	switch {
	case lacks[now] == "":
		return nil, nil
	case write:
		return nil, &failure.Error{Kind: failure.Denied, Text: lacks[now]}
	}
	s.Warn("%s", lacks[now])
	return &failure.Error{Kind: failure.Denied, Text: lacks[now]}, nil
}
