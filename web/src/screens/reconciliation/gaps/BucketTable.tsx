import { useState } from 'react';
import { count } from '../../../app/format';
import { providerName } from '../../../app/providers';
import { DataTable } from '../../../parts/DataTable';
import { Button } from '../../../parts/forms/Button';
import { Grade } from '../../../parts/Grade';
import { Money } from '../../../parts/Money';
import { Chip } from '../../../parts/Page';
import { type Bucket, columnName, exactGapOf, LOOK, lookOf } from './cells';

const ROWS = 100;

/** The buckets of the heatmap as rows, newest first; more rows on request. */
export function BucketTable({
  buckets,
  onOpen,
}: {
  buckets: readonly Bucket[];
  onOpen: (bucket: Bucket) => void;
}) {
  const [shown, setShown] = useState(ROWS);
  const rows = buckets.slice(0, shown);
  return (
    <DataTable
      caption="Buckets"
      rows={rows}
      rowKey={(one) => `${one.bucket} ${one.provider} ${one.provider_account_id} ${one.model}`}
      onOpen={onOpen}
      rowLabel={(one) => `Open ${one.model}, ${name(one)}`}
      columns={[
        { id: 'day', head: 'Day (UTC)', cell: name },
        { id: 'provider', head: 'Provider', cell: (one) => providerName(one.provider) },
        { id: 'model', head: 'Model', cell: (one) => one.model },
        {
          id: 'status',
          head: 'Status',
          cell: (one) => (
            <>
              {LOOK[lookOf(one)]} {one.flagged_gap && <Chip kind="bad">Flagged</Chip>}
            </>
          ),
        },
        {
          id: 'grade',
          head: 'Confidence',
          cell: (one) => <Grade grade={one.confidence} score={one.confidence_score} />,
        },
        {
          id: 'billed',
          head: 'Billed',
          isNumber: true,
          cell: (one) => <Money usd={one.provider_cost_usd} isProvisional={one.provisional} />,
        },
        { id: 'observed', head: 'Observed', isNumber: true, cell: (one) => <Money usd={one.our_cost_usd} /> },
        {
          id: 'gap',
          head: 'Billed − observed',
          isNumber: true,
          cell: (one) => <Money usd={exactGapOf(one)} />,
        },
      ]}
      more={
        <>
          <span style={{ marginRight: 'auto', color: 'var(--muted)' }}>
            {count(rows.length)} of {count(buckets.length)} rows
          </span>
          {rows.length < buckets.length && <Button onPress={() => setShown(shown + ROWS)}>More rows</Button>}
        </>
      }
    />
  );
}

const name = ({ bucket }: Bucket) =>
  columnName(bucket.slice(11, 16) === '00:00' ? bucket.slice(0, 10) : bucket.slice(0, 13));
