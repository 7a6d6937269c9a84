import { type Bucket, gapOf, type Look, lookOf } from './cells';
import css from './Gaps.module.css';

const GAP = 1;

/** The look of one bucket: colour and mark by status, a stronger colour for a larger difference, a ring where flagged. */
export function CellMark({
  bucket,
  x,
  y,
  width,
  height,
  largest,
}: {
  bucket: Bucket | undefined;
  x: number;
  y: number;
  width: number;
  height: number;
  largest: number;
}) {
  const box = { x: x + GAP, y: y + GAP, width: width - 2 * GAP, height: height - 2 * GAP, rx: 2 };
  if (!bucket) return <rect {...box} className={css.none} />;
  const look = lookOf(bucket);
  return (
    <>
      <Mark look={look} box={box} strength={strengthOf(bucket, look, largest)} />
      {bucket.flagged_gap && <rect {...box} className={css.ring} />}
    </>
  );
}

/** Between 0.3 and 1, by the logarithm of the difference. */
function strengthOf(bucket: Bucket, look: Look, largest: number): number {
  if (look === 'matched') return 0.42;
  if (look === 'aside') return 0.3;
  return 0.55 + 0.45 * (Math.log1p(Math.abs(gapOf(bucket))) / Math.log1p(largest));
}

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
  rx: number;
}

export function Mark({ look, box, strength }: { look: Look; box: Box; strength: number }) {
  const { x, y, width, height } = box;
  const right = x + width;
  const bottom = y + height;
  return (
    <>
      <rect {...box} className={`${css.fill} ${css[look]}`} fillOpacity={strength} />
      {look === 'partial' && <path className={css.mark} d={`M${x} ${bottom}L${right} ${y}`} />}
      {look === 'unmatched' && (
        <path className={css.mark} d={`M${x} ${bottom}L${right} ${y}M${x} ${y}L${right} ${bottom}`} />
      )}
      {look === 'aside' && <circle className={css.dot} cx={x + width / 2} cy={y + height / 2} r={2} />}
    </>
  );
}

/** A swatch of the legend. */
export function Swatch({ look }: { look: Look | 'flagged' | 'none' }) {
  const box = { x: 1, y: 1, width: 14, height: 14, rx: 2 };
  return (
    <svg width={16} height={16} aria-hidden="true">
      {look === 'flagged' ? (
        <rect {...box} className={css.ring} />
      ) : look === 'none' ? (
        <rect {...box} className={css.none} />
      ) : (
        <Mark look={look} box={box} strength={look === 'matched' || look === 'aside' ? 0.42 : 0.85} />
      )}
    </svg>
  );
}
