import { type Decimal, exactUsd, usd, usdDown } from '../app/format';
import css from './Money.module.css';

/**
 * An amount in US dollars: two decimals, all digits on hover. An absent amount is a dash, never zero. A modelled amount
 * has a tilde, a provisional one a mark.
 */
export function Money({
  usd: value,
  isModeled = false,
  isProvisional = false,
  isExact = false,
  isClaimable = false,
  shown,
}: {
  usd: Decimal | null | undefined;
  isModeled?: boolean;
  isProvisional?: boolean;
  /** Shows all digits, for amounts far below a cent. */
  isExact?: boolean;
  /** Rounded toward zero, as claims are: the amount of a finding. */
  isClaimable?: boolean;
  /** The amount in cents where it must foot; the exact one stays on hover. */
  shown?: Decimal | undefined;
}) {
  if (value === null || value === undefined)
    return (
      <span className={css.money} title="unknown">
        –
      </span>
    );
  const exact = exactUsd(value);
  return (
    <span className={css.money} title={isModeled ? `${exact}, modelled` : exact}>
      {isModeled && <span className={css.mark}>~</span>}
      {textOf(shown ?? value, { isExact, isClaimable })}
      {isProvisional && (
        <span className={css.mark} title="provisional: the provider may still change it">
          *<span className="visually-hidden"> provisional</span>
        </span>
      )}
    </span>
  );
}

function textOf(
  value: Decimal,
  { isExact, isClaimable }: { isExact: boolean; isClaimable: boolean },
): string {
  if (isExact) return exactUsd(value);
  return isClaimable ? usdDown(value) : usd(value);
}

/** An amount in whole cents. */
export function Cents({ cents }: { cents: number | null | undefined }) {
  if (cents === null || cents === undefined) return <Money usd={null} />;
  const sign = cents < 0 ? '-' : '';
  const digits = String(Math.abs(cents)).padStart(3, '0');
  return <Money usd={`${sign}${digits.slice(0, -2)}.${digits.slice(-2)}`} />;
}

/** An amount in the currency of a document: dollars as everywhere, another currency with its code. */
export function Amount({ value, currency }: { value: Decimal | null | undefined; currency: string | null }) {
  if (value === null || value === undefined || currency === null || currency === 'USD')
    return <Money usd={value} />;
  const text = usd(value).replace('$', '');
  return (
    <span className={css.money} title={`${exactUsd(value).replace('$', '')} ${currency}`}>
      {text} {currency}
    </span>
  );
}
