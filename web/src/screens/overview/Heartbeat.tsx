import { Link } from 'wouter';
import type { paths } from '../../api/client';
import { count, time } from '../../app/format';
import { Card, Chip, Facts } from '../../parts/Page';

type Health = paths['/api/v1/ingest/health']['get']['responses'][200]['content']['application/json'];

/** Hours without a call after which the heartbeat is no longer good. */
const QUIET_HOURS = 24;

/** When the last call came, how many came, and which were rejected and why. */
export function Heartbeat({ health }: { health: Health }) {
  const { sources } = health;
  const last = sources.map((source) => source.last_seen ?? '').reduce((a, b) => (a > b ? a : b), '');
  const hours = last ? (Date.now() - Date.parse(last)) / 3_600_000 : Number.POSITIVE_INFINITY;
  const total = (field: 'calls' | 'unmetered' | 'unpriced') =>
    sources.reduce((sum, source) => sum + source[field], 0);
  const rejects = new Map<string, number>();
  for (const { rejected } of sources)
    for (const [reason, calls] of Object.entries(rejected))
      rejects.set(reason, (rejects.get(reason) ?? 0) + calls);
  return (
    <Card title="Calls arriving" aside={<Link href="/ingest-health">Ingest health</Link>}>
      <p>
        <Chip kind={hours < QUIET_HOURS ? 'good' : 'warn'}>
          {last === '' ? 'No call yet' : hours < QUIET_HOURS ? 'Receiving' : 'Quiet'}
        </Chip>{' '}
        {last && `Last call ${time(last)}, ${age(hours)} ago`}
      </p>
      <Facts
        items={[
          [
            'Calls in 30 days',
            <Link key="calls" href="/events">
              {count(total('calls'))}
            </Link>,
          ],
          ['Without usage', count(total('unmetered'))],
          ['Without a price', count(total('unpriced'))],
          [
            'Rejected',
            rejects.size === 0
              ? '0'
              : [...rejects]
                  .map(([reason, calls]) => `${count(calls)} ${reason.replaceAll('_', ' ')}`)
                  .join(' · '),
          ],
        ]}
      />
    </Card>
  );
}

function age(hours: number): string {
  if (hours < 1) return `${Math.max(1, Math.round(hours * 60))} min`;
  return hours < 48 ? `${Math.round(hours)} h` : `${Math.round(hours / 24)} days`;
}
