package cutover

import (
	"context"
	"fmt"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
)

const (
	// attempt is for how long a server waits at a time until it has a collection for itself, and rest how long the
	// operations have then that waited behind.
	attempt = time.Second
	rest    = time.Second
	// looks is the time between two looks at the collections while it is not known what the server does.
	looks = 250 * time.Millisecond
)

// alter runs a command that changes the settings or the name of a collection. A server waits with it until no
// transaction and no other operation uses the collection, and lets nothing else begin meanwhile, not even a read. So a
// server that ends what exceeds its limit is asked again and again for s.Timeout, for a moment each time. Another server, and a
// router, which may go on with what it has ended, is asked once. If it ends the command, the collections are looked at for as
// long again before anything else is done. is reports whether what was asked for is there.
func (s *Server) alter(ctx context.Context, name string, ask func(ctx context.Context) error, is func(all map[string]Info) bool) error {
	brief := s.Halves && !s.Router
	limit := s.Timeout
	if brief {
		limit = min(limit, attempt)
	}
	sleep := s.sleep
	if sleep == nil {
		sleep = patience.Sleep
	}
	return s.Patience.Do(ctx, func() error {
		for spent := time.Duration(0); ; {
			_, cancel, err := s.begin(ctx) // the check has its own time
			if err != nil {
				return err
			}
			cancel()
			writing, cancel := context.WithTimeout(context.WithoutCancel(s.in(ctx)), limit)
			err = ask(writing)
			cancel()
			if !failure.Means(err, failure.Expired|failure.Locked) {
				return err
			}
			if !brief { // it may be carried out yet
				if done, look := s.appears(ctx, sleep, is); done || look != nil {
					return look
				}
			}
			if spent += limit + rest; !brief || spent >= s.Timeout {
				return &failure.Error{Kind: failure.Held, Err: err, Text: fmt.Sprintf("a transaction or another operation holds %s.%s: "+
					"the server did not get the collection for itself within %s", s.DB.Name(), name, s.Timeout)}
			}
			if err := sleep(ctx, rest); err != nil {
				return err
			}
		}
	})
}

// appears looks at the collections until is reports true, or for s.Timeout.
func (s *Server) appears(ctx context.Context, sleep func(context.Context, time.Duration) error, is func(map[string]Info) bool) (bool, error) {
	for spent := time.Duration(0); ; spent += looks {
		all, err := s.list(ctx)
		if done := err == nil && is(all); err != nil || done || spent >= s.Timeout {
			return done, err
		}
		if err := sleep(ctx, looks); err != nil {
			return false, err
		}
	}
}
