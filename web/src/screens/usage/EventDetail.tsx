import { Link } from 'wouter';
import { query } from '../../api/client';
import { withQuery } from '../../app/filters';
import { count, time } from '../../app/format';
import { providerName } from '../../app/providers';
import { Money } from '../../parts/Money';
import { Card, Chip, Facts } from '../../parts/Page';
import { ErrorState, Loading, Notice } from '../../parts/States';
import { CostFormula } from './CostFormula';
import { Payload } from './Payload';

/** A call: its labels, tokens, cost with the sum behind it, and its payload where the key may read it. */
export function EventDetail({ id }: { id: string }) {
  const event = query.useQuery('get', '/api/v1/events/{id}', { params: { path: { id } } });
  if (event.isPending) return <Loading rows={8} />;
  if (event.error) return <ErrorState error={event.error} retry={() => void event.refetch()} />;
  const call = event.data;
  if (!call) return null;
  const filtered = (name: string, value: string | null) =>
    value ? <Link href={withQuery('/events', { [name]: value })}>{value}</Link> : '–';
  return (
    <>
      {call.superseded_by && (
        <Notice kind="warn">
          A later report replaced this one:{' '}
          <Link href={`/events/${call.superseded_by}`}>open the later one</Link>.
        </Notice>
      )}
      {call.blocked_rule_id && (
        <Notice>
          An enforcement rule blocked this call. It would have cost <Money usd={call.prevented_usd} isExact />
          .
        </Notice>
      )}
      <Card title={call.model} aside={<Money usd={call.cost_source === 'unpriced' ? null : call.cost_usd} />}>
        <Facts
          items={[
            ['Time', time(call.timestamp)],
            ['Duration', `${count(call.duration_ms)} ms`],
            ['Provider', providerName(call.provider)],
            ['Billed by', providerName(call.billed_by)],
            ['Answered by model', call.response_model ?? '–'],
            [
              'Status',
              call.status === 'ok' ? (
                'ok'
              ) : (
                <Chip key="status" kind="warn">
                  {call.status}
                </Chip>
              ),
            ],
            ['Team', filtered('team_id', call.team_id)],
            ['Feature', filtered('feature', call.feature)],
            ['Session', filtered('session_id', call.session_id)],
            ['Project', filtered('project_id', call.project_id)],
            ['User', call.user_id ?? '–'],
            ['Environment', call.environment ?? '–'],
            ['Service tier', call.service_tier ?? '–'],
            ['Batch', call.is_batch ? (call.batch_id ?? 'yes') : 'no'],
            ['Provider’s request id', call.request_id ?? '–'],
            ['Stop reason', call.stop_reason || '–'],
          ]}
        />
      </Card>
      <Card title="Tokens">
        <Facts
          items={[
            ['Input, not cached', count(call.input_tokens)],
            ['Read from cache', count(call.cache_read)],
            ['Written to cache', count(call.cache_creation)],
            ['Output', count(call.output_tokens)],
            ['Reasoning, within output', count(call.reasoning_tok)],
          ]}
        />
        {call.usage_missing.length > 0 && (
          <Notice kind="warn">The client did not report: {call.usage_missing.join(', ')}.</Notice>
        )}
        {call.usage_flags.length > 0 && (
          <Notice kind="warn">The counts look wrong: {call.usage_flags.join(', ')}.</Notice>
        )}
      </Card>
      <CostFormula id={id} />
      <Payload id={id} />
    </>
  );
}
