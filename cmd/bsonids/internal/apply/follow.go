package apply

import (
	"context"
	"errors"
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/progress"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// errFollowed is why a run ended that made a copy which follows its source.
var errFollowed = errors.New("the copy does not follow its source any more; the same command continues")

// source returns the collection of a copy that follows it. If an earlier run followed it and it was renamed
// since, it is found by its UUID.
func (st *step) source(ctx context.Context) (*mongo.Collection, error) {
	coll := st.of.db.Collection(st.Collection)
	state := st.of.state.Of(st.Step)
	if state.Stream == nil || state.CollectionUUID == "" {
		return coll, nil
	}
	name, err := convert.CollectionWith(ctx, st.of.db, state.CollectionUUID)
	if err == nil && name != "" {
		coll = st.of.db.Collection(name)
	}
	return coll, err
}

// mayFollow returns a usage error if a copy of the plan cannot follow its collection on this server.
func (p *Planned) mayFollow(ctx context.Context) error {
	for _, st := range p.steps() {
		if st.Into == "" || !p.Follow {
			continue
		}
		err := p.Do(ctx, func() (err error) {
			coll := p.db.Collection(st.Collection)
			if !st.fresh {
				if coll, err = st.source(ctx); err != nil {
					return err
				}
			}
			spec, err := server.FindCollection(ctx, coll)
			if err != nil {
				return err
			}
			if err = convert.CanFollow(ctx, coll, spec); errors.Is(err, convert.ErrCannotFollow) {
				err = failure.Usagef("--follow: %v", err)
			}
			return err
		})
		if err != nil {
			return &migration.CollectionError{Collection: st.Collection, Err: err}
		}
	}
	return nil
}

// followers are the copies of a plan that follow their collections at the same time.
type followers struct {
	until bool                     // they end when all have caught up
	begin func() progress.Progress // shows that all have caught up

	mu     sync.Mutex
	behind int               // copies that have not caught up
	lags   map[string]int64  // seconds, by the name of the copy
	bar    progress.Progress // nil until all have caught up
}

// add returns what one more copy needs in order to follow its source. compared is called when it was copied
// and compared. warn tells that the comparison begins again.
func (f *followers) add(into string, compared func(), warn func(error)) *convert.Follow {
	done, first := int64(0), true // of this copy
	return &convert.Follow{Compared: compared, Restarted: warn,
		CaughtUp: func() bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			if first {
				first = false
				f.behind--
			}
			if f.behind == 0 && f.bar == nil {
				f.bar = f.begin()
			}
			return f.behind == 0 && f.until
		},
		Report: func(s convert.Followed) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.lags[into] = s.LagSeconds
			n := s.Written + s.Deleted - done
			done += n
			if f.bar == nil {
				return
			}
			var most int64
			for _, lag := range f.lags {
				most = max(most, lag)
			}
			f.bar.Add(int(n))
			f.bar.Lag(most)
		}}
}

// follow makes the copies, which then follow their collections until the context ends, or until all have
// caught up. A copy takes the place of one of the collections that are converted at once only until it was
// compared: a follower never ends by itself.
func (p *Planned) follow(ctx context.Context, copies []work) {
	bar := p.Progress(documents(copies), "copying", p.plan.Database)
	all := &followers{until: p.UntilCaughtUp, behind: len(copies), lags: make(map[string]int64)}
	all.begin = func() progress.Progress {
		bar.Done()
		return p.Progress(-1, "following", p.plan.Database)
	}
	defer func() {
		bar.Done()
		if all.bar != nil {
			all.bar.Done()
		}
	}()
	p.each(ctx, copies, func(ctx context.Context, st *step, free func()) {
		st.follow = all.add(st.Into, free, func(err error) {
			p.Warn("%s: the changes behind the saved position are no longer in the oplog, and the comparison begins again: %s", st.Into, p.Explain(err).Text)
		})
		st.run(ctx, bar.Add)
	})
}

// copies returns the number of steps that make a copy.
func (w work) copies() (n int) {
	for _, st := range w.steps {
		if st.Into != "" {
			n++
		}
	}
	return n
}

// phases returns the collections that are converted first, and those whose copies follow them.
func (p *Planned) phases() (first, copies []work) {
	n := len(p.works)
	if p.Follow {
		n = slices.IndexFunc(p.works, func(w work) bool { return w.copies() > 0 })
	}
	return p.works[:n], p.works[n:]
}
