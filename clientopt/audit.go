package clientopt

import (
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/uuidaudit"
	"github.com/bsonids/bsonids/uuidrep"
)

// WithAudit reports the UUIDs that the client sends or receives in a form that is not its own: see
// package [uuidaudit]. The representation is the client's. Name those of
// bsoncodec.RegistryBuilder.AlsoDecode by [uuidaudit.WithAlso]. The key vault of automatic encryption
// is left out: the driver writes the UUIDs in it.
//
// The command monitor of [WithClientOptions] is called as well. A monitor that is set on the
// options that [ApplyURI] returned, or by a later argument of mongo.Connect, replaces the audit;
// give it to [uuidaudit.Audit.Monitor] instead. To call [uuidaudit.Audit.Missed], make the Audit by
// [uuidaudit.New] and set its monitor on the options that ApplyURI returned. Errors are those of [uuidaudit.New], from
// [ApplyURI] and [Connect].
func WithAudit(report func(uuidaudit.Finding), opts ...uuidaudit.Option) Option {
	return func(s *settings) { s.audits = append(s.audits, auditOf{report, opts}) }
}

type auditOf struct {
	report func(uuidaudit.Finding)
	opts   []uuidaudit.Option
}

// monitor adds the audits to the client's command monitor.
func (s *settings) monitor(opts *options.ClientOptions, rep uuidrep.Representation) error {
	for _, a := range s.audits {
		if e := opts.AutoEncryptionOptions; e != nil && e.KeyVaultNamespace != "" {
			a.opts = append(slices.Clone(a.opts), uuidaudit.WithIgnore(e.KeyVaultNamespace))
		}
		audit, err := uuidaudit.New(rep, a.report, a.opts...)
		if err != nil {
			return fmt.Errorf("clientopt: WithAudit: %w", err)
		}
		opts.SetMonitor(audit.Monitor(opts.Monitor))
	}
	return nil
}
