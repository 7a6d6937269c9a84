import { type Decimal, exactUsd, usd } from '../../app/format';

/** Dollars per million tokens, with all digits that are not zero. An unknown rate is a dash. */
export function Rate({ value }: { value: Decimal | null | undefined }) {
  if (value === null || value === undefined) return <span title="unknown, which is not free">–</span>;
  const exact = exactUsd(value);
  return (
    <span title={`${exact} per million tokens`}>{exact.length > usd(value).length ? exact : usd(value)}</span>
  );
}
