import type { ReactNode } from 'react';
import { count } from '../app/format';
import css from './RunProgress.module.css';

interface Progress {
  stage: string;
  done: number;
  total: number;
  /** Absent: the share is unknown. */
  percent?: number;
}

/** Progress of a run: its stage, which is announced when it changes, and how much is done. */
export function RunProgress({
  label,
  progress,
  children,
}: {
  label: string;
  progress: Progress;
  children?: ReactNode;
}) {
  const stage = progress.stage.replaceAll('_', ' ');
  return (
    <div className={css.progress}>
      <div className={css.head}>
        <span role="status">
          {label}: {stage}
        </span>
        <span>
          {progress.total > 0 && `${count(progress.done)} of ${count(progress.total)}`} {children}
        </span>
      </div>
      <div
        className={css.track}
        role="progressbar"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={progress.percent}
      >
        {progress.percent === undefined ? (
          <div className={`${css.bar} ${css.unknown}`} />
        ) : (
          <div className={css.bar} style={{ width: `${progress.percent}%` }} />
        )}
      </div>
    </div>
  );
}
