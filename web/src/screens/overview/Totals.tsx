import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { query } from '../../api/client';
import { time, usd } from '../../app/format';
import { exactSum } from '../../parts/exactSum';
import { Money } from '../../parts/Money';
import { ErrorState, Loading } from '../../parts/States';
import css from './Overview.module.css';

/** The six amounts of the financial summary, and their total. */
export function Totals() {
  const summary = query.useQuery('get', '/api/v1/financial/summary', {});
  if (summary.isPending) return <Loading label="Amounts" />;
  if (summary.error) return <ErrorState error={summary.error} retry={() => void summary.refetch()} />;
  const data = summary.data;
  const amounts = [
    data.recoverable_confirmed_usd,
    data.recoverable_review_usd,
    data.prevented_usd,
    data.preventable_modeled_usd,
    data.unexplained_critical_usd,
    data.unexplained_review_usd,
  ];
  const isFooted = usd(exactSum(amounts)) === usd(data.total_financial_opportunity_usd);
  const modelledAt = data.preventable_modeled_as_of;
  return (
    <section className={css.totals} aria-label="Amounts of all days so far">
      <div className={css.total}>
        <span className={css.tileName}>Total opportunity</span>
        <strong className={css.big}>
          <Money usd={data.total_financial_opportunity_usd} />
        </strong>
        <span className={css.hint}>
          {isFooted ? '✓ Sum of the 6 amounts, all days so far' : 'The 6 amounts do not add up to this total'}
        </span>
      </div>
      <div className={css.tiles}>
        <Tile name="Recoverable, confirmed" href="/findings" hint="Billing errors ready to claim">
          <Money usd={data.recoverable_confirmed_usd} />
        </Tile>
        <Tile name="Recoverable, to review" href="/review" hint="Likely errors that need a decision">
          <Money usd={data.recoverable_review_usd} />
        </Tile>
        <Tile name="Prevented" href="/enforcement" hint="Cost of calls that rules blocked">
          <Money usd={data.prevented_usd} />
        </Tile>
        <Tile
          name="Preventable, modelled"
          href="/enforcement"
          hint={modelledAt ? `If the rules had run; as of ${time(modelledAt)}` : 'No savings run yet'}
        >
          <Money usd={modelledAt ? data.preventable_modeled_usd : null} isModeled />
        </Tile>
        <Tile name="Unexplained, critical" href="/review" hint="Large charges without an explanation">
          <Money usd={data.unexplained_critical_usd} />
        </Tile>
        <Tile name="Unexplained, to review" href="/review" hint="Other charges without an explanation">
          <Money usd={data.unexplained_review_usd} />
        </Tile>
      </div>
    </section>
  );
}

function Tile({
  name,
  href,
  hint,
  children,
}: {
  name: string;
  href: string;
  hint: string;
  children: ReactNode;
}) {
  return (
    <Link href={href} className={css.tile}>
      <span className={css.tileName}>{name}</span>
      <strong className={css.amount}>{children}</strong>
      <span className={css.hint}>{hint}</span>
    </Link>
  );
}
