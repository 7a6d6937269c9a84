import { Link } from 'wouter';
import { query } from '../../api/client';
import { withQuery } from '../../app/filters';
import { count, time } from '../../app/format';
import { Money } from '../../parts/Money';
import { ErrorState, Loading, Notice } from '../../parts/States';
import type { Rule } from './ruleTypes';

/** The calls that a rule would have stopped in the last 30 days, before it begins to stop calls. */
export function WouldStop({ rule }: { rule: Rule }) {
  const savings = query.useQuery('get', '/api/v1/enforcement/savings', {});
  if (savings.isPending) return <Loading rows={2} />;
  if (savings.error) return <ErrorState error={savings.error} retry={() => void savings.refetch()} />;
  const { modeled } = savings.data;
  const row = modeled?.by_rule.find(({ rule_id }) => rule_id === rule.id);
  return (
    <>
      <p>From now on wrappers stop calls that break this rule, once they next ask for their rules.</p>
      {modeled && row ? (
        <Notice kind="warn">
          In the 30 days before {time(modeled.as_of)} it would have{' '}
          {rule.type === 'model_downgrade' ? (
            <>
              sent {count(row.downgraded_calls)} of {count(row.asked_calls)} calls to a cheaper model
            </>
          ) : (
            <>
              stopped {count(row.blocked_calls)} of {count(row.asked_calls)} calls
            </>
          )}
          , worth <Money usd={row.preventable_modeled_usd_exact} isModeled />.{' '}
          <Link href={withQuery('/enforcement/savings', { rule: rule.id })}>See the calls</Link>
        </Notice>
      ) : (
        <Notice kind="warn">
          No savings run has modelled this rule yet, so it is unknown which calls it would stop.{' '}
          <Link href="/enforcement/savings">Model the last 30 days first</Link>
        </Notice>
      )}
    </>
  );
}
