import { percent } from '../app/format';
import { Chip } from './Page';

const KIND = { HIGH: 'good', MEDIUM: 'accent', LOW: 'warn', UNVERIFIED: 'plain' } as const;
const NAME = { HIGH: 'High', MEDIUM: 'Medium', LOW: 'Low', UNVERIFIED: 'Unverified' } as const;

/** The grade of confidence; the probability behind it on hover. */
export function Grade({ grade, score }: { grade: keyof typeof KIND | null; score?: number | null }) {
  if (grade === null) return <>–</>;
  return (
    <span title={score === null || score === undefined ? undefined : `probability ${percent(score)}`}>
      <Chip kind={KIND[grade]}>{NAME[grade]}</Chip>
    </span>
  );
}
