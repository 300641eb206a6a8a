package migrate

import (
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// addRun adds a run of the conversion, which began after those that were added before. now is the time
// of the server.
func addRun(s *StepProgress, r *record.Run, now time.Time) {
	s.By = r.By.String()
	s.Started, s.Updated = &r.Started, &r.Updated
	s.PerSecond, s.SecondsLeft = 0, 0
	alive := r.Alive(now)
	if s.Reason = ""; !alive {
		s.Reason = unfinished(r, now)
	}
	if r.Kind == record.Undo {
		switch {
		case alive:
			s.Status = BeingUndone
		case s.Status == WasUndone, s.Status == GivenUp: // as the runs say whose values it has restored
		default:
			s.Status = Stopped
		}
		return
	}
	if r.Undone != nil && r.Undone.Complete {
		s.Status, s.Read, s.Changed, s.Skipped, s.Verified = undoneStatus(s.Status, r), 0, 0, 0, nil
		return
	}
	if r.Progress.Documents > 0 {
		s.Documents = r.Progress.Documents
	}
	if r.Into != "" {
		s.Changed = 0
	}
	s.Read = r.Progress.Read
	s.Changed, s.Skipped, s.Verified = s.Changed+r.Progress.Changed, r.Progress.Skipped, nil
	if r.Verified != nil {
		s.Verified = &r.Verified.Proven
	}
	if s.Status = statusOf(r, now); s.ended() {
		s.Read = s.Documents
	}
	if r.Undone != nil {
		s.Reason = "the undo is not complete"
	}
	if took := r.Updated.Sub(r.Started).Seconds(); took > 0 && r.Progress.Read > 0 {
		s.PerSecond = float64(r.Progress.Read) / took
		if alive {
			s.SecondsLeft = int64(float64(max(0, s.Documents-s.Read)) / s.PerSecond)
		}
	}
}

// undoneStatus returns the status of a conversion whose last run was undone, and whose status before that run was was.
func undoneStatus(was StepStatus, r *record.Run) StepStatus {
	if was == GivenUp || r.Undone.GivenUp {
		return GivenUp
	}
	return WasUndone
}

// unfinished returns why the last run of a conversion has not finished it: it is in progress, was killed or has stopped. It is
// empty if the run has finished it.
func unfinished(r *record.Run, now time.Time) string {
	switch {
	case r.Alive(now):
		return "a run is in progress: " + r.String()
	case r.Ended != nil:
		return r.Reason
	case r.Kind == record.Undo:
		return "the undo was killed"
	}
	return "the run was killed"
}
