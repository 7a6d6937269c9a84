import { useState } from 'react';
import { type components, query } from '../../api/client';
import { useFilter, withQuery } from '../../app/filters';
import { count, time } from '../../app/format';
import { DataTable } from '../../parts/DataTable';
import { Button } from '../../parts/forms/Button';
import { DateField } from '../../parts/forms/DateField';
import { TextField } from '../../parts/forms/Fields';
import { ClearFilters } from '../../parts/forms/Filters';
import { Modal } from '../../parts/forms/Modal';
import { Facts, Page } from '../../parts/Page';
import { PAGE_ROWS, Pager, useOffset } from '../../parts/Pager';
import { Empty, ErrorState, Loading, Notice } from '../../parts/States';
import { SettingsTabs } from '../installation/SettingsTabs';

const PATH = '/api/v1/audit-log';
type Row = components['schemas']['AuditRecord'];

export default function AuditLog() {
  const [action, setAction] = useFilter<string>('action', '');
  const [actor, setActor] = useFilter<string>('actor', '');
  const [subject, setSubject] = useFilter<string>('subject_id', '');
  const [since, setSince] = useFilter<string>('since', '');
  const [until, setUntil] = useFilter<string>('until', '');
  const [open, setOpen] = useState<Row>();
  const offset = useOffset();
  const filters = Object.fromEntries(
    Object.entries({ action, actor, subject_id: subject, since, until }).filter(([, value]) => value !== ''),
  );
  const log = query.useQuery(
    'get',
    PATH,
    { params: { query: { ...filters, limit: PAGE_ROWS, offset } } },
    { placeholderData: (before) => before },
  );
  const isFiltered = Object.keys(filters).length > 0;
  const clear = () => {
    for (const set of [setAction, setActor, setSubject, setSince, setUntil]) set('');
  };
  return (
    <Page
      title="Audit log"
      lead="Who changed what, and when. Each record seals the one before it, so a removed record is noticed."
      tabs={<SettingsTabs />}
      filters={
        <>
          <TextField label="Action" value={action} onChange={setAction} placeholder="key.created" />
          <TextField label="Id of who did it" value={actor} onChange={setActor} placeholder="key_…" />
          <TextField label="Id of the subject" value={subject} onChange={setSubject} />
          <DateField label="From (UTC)" value={since} onChange={setSince} />
          <DateField label="To (UTC)" value={until} onChange={setUntil} />
          {isFiltered && <ClearFilters onPress={clear} />}
        </>
      }
    >
      {log.isPending ? (
        <Loading />
      ) : log.error ? (
        <ErrorState error={log.error} retry={() => void log.refetch()} />
      ) : log.data.records.length === 0 ? (
        <Empty title={isFiltered ? 'No record matches' : 'No records yet'}>
          {isFiltered && <Button onPress={clear}>Clear filters</Button>}
        </Empty>
      ) : (
        <>
          {log.data.head && (
            <Notice>
              Record {count(log.data.head.seq)} is the newest. Its hash{' '}
              <code>{log.data.head.hash.slice(0, 16)}…</code> covers the whole log.{' '}
              <code>./trueup audit-log verify</code> on the server checks the chain.
            </Notice>
          )}
          <DataTable
            caption="Audit log, newest first"
            rows={log.data.records}
            rowKey={({ seq }) => String(seq)}
            rowLabel={({ seq, action: done }) => `Open record ${seq}: ${done}`}
            onOpen={setOpen}
            csv={withQuery(PATH, { ...filters, format: 'csv', limit: 1_000 })}
            more={<Pager page={log.data} />}
            columns={[
              { id: 'seq', head: 'No.', cell: ({ seq }) => seq },
              { id: 'at', head: 'Time', cell: ({ at }) => time(at) },
              { id: 'action', head: 'Action', cell: (row) => <code>{row.action}</code> },
              {
                id: 'actor',
                head: 'Who',
                cell: ({ actor: { id, name } }) => <span title={id}>{name ?? id}</span>,
              },
              {
                id: 'subject',
                head: 'Subject',
                cell: ({ subject: of }) => (of ? <code title={of.type}>{of.id}</code> : '–'),
              },
              {
                id: 'details',
                head: 'Details',
                isWide: true,
                cell: ({ details }) =>
                  Object.entries(details)
                    .map(
                      ([name, value]) =>
                        `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`,
                    )
                    .join(' · ')
                    .slice(0, 120),
              },
            ]}
          />
        </>
      )}
      <Modal
        title={`Record ${open?.seq ?? ''}`}
        isOpen={open !== undefined}
        onClose={() => setOpen(undefined)}
        side
      >
        {open && (
          <>
            <Facts
              items={[
                ['Action', <code key="a">{open.action}</code>],
                ['Time', time(open.at)],
                ['Who', `${open.actor.name ?? ''} ${open.actor.id} (${open.actor.kind})`],
                ['Subject', open.subject ? `${open.subject.type} ${open.subject.id}` : '–'],
                ['Request', <code key="r">{open.request_id ?? '–'}</code>],
              ]}
            />
            <h3>Details</h3>
            <pre style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere', margin: 0 }}>
              {JSON.stringify(open.details, null, 2)}
            </pre>
            <h3>Seal</h3>
            <p style={{ overflowWrap: 'anywhere' }}>
              Hash <code>{open.hash}</code>
            </p>
            <p style={{ overflowWrap: 'anywhere' }}>
              Hash of the record before <code>{open.prev_hash}</code>
            </p>
          </>
        )}
      </Modal>
    </Page>
  );
}
