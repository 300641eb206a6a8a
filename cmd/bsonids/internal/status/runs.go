package status

import (
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
)

// add adds a run of the conversion, which began after those that were added before. now is the time
// of the server.
func add(s *report.StepStatusOf, r *record.Run, now time.Time) {
	s.By = r.By.String()
	s.Started, s.Updated, s.Reason = &r.Started, &r.Updated, r.Reason
	s.PerSecond, s.SecondsLeft = 0, 0
	alive := r.Alive(now)
	if !alive && r.Ended == nil {
		s.Reason = "the run was killed"
		if r.Kind == record.Undo {
			s.Reason = "the undo was killed"
		}
	}
	if r.Kind == record.Undo {
		switch {
		case alive:
			s.Status = report.BeingUndone
		case r.Outcome == record.Done:
			s.Status = report.WasUndone
		default:
			s.Status = report.Stopped
		}
		return
	}
	if r.Progress.Documents > 0 {
		s.Documents = r.Progress.Documents
	}
	s.Read = min(s.Read+r.Progress.Read, max(s.Documents, r.Progress.Read))
	s.Changed, s.Skipped = max(s.Changed, r.Progress.Changed), max(s.Skipped, r.Progress.Skipped)
	if r.Verified != nil {
		s.Verified = &r.Verified.Proven
	}
	switch {
	case alive:
		s.Status = report.Running
	case r.Outcome == record.Done:
		s.Status, s.Read = report.DoneStep, s.Documents
	default:
		s.Status = report.Stopped
	}
	switch {
	case r.Undone == nil:
	case r.Undone.Complete:
		s.Status = report.WasUndone
	default:
		s.Status, s.Reason = report.Stopped, "the undo is not complete"
	}
	if took := r.Updated.Sub(r.Started).Seconds(); took > 0 && r.Progress.Read > 0 {
		s.PerSecond = float64(r.Progress.Read) / took
		if alive {
			s.SecondsLeft = int64(float64(max(0, s.Documents-s.Read)) / s.PerSecond)
		}
	}
}
