import { Link } from 'wouter';
import type { paths } from '../../api/client';
import { withQuery } from '../../app/filters';
import { percent } from '../../app/format';
import { exactSum, footedCents } from '../../parts/exactSum';
import { Grade } from '../../parts/Grade';
import { Money } from '../../parts/Money';
import { Card } from '../../parts/Page';
import css from './Overview.module.css';

type Summary =
  paths['/api/v1/reconciliation/summary']['get']['responses'][200]['content']['application/json'];

const GRADES = ['HIGH', 'MEDIUM', 'LOW', 'UNVERIFIED'] as const;

/** The confidence with which observed calls explain the bill of the last complete month. */
export function Confidence({ summary }: { summary: Summary }) {
  const billed = exactSum([summary.matched_usd, summary.unmatched_usd]);
  const footed = footedCents(GRADES.map((grade) => summary.confidence_distribution[grade]));
  const share = (grade: (typeof GRADES)[number]) =>
    Number(billed) === 0 ? 0 : summary.confidence_distribution[grade] / Number(billed);
  return (
    <Card
      title={`Confidence in ${summary.period}`}
      aside={<Link href={withQuery('/statement', { period: summary.period })}>Statement</Link>}
    >
      <div className={css.grades} aria-hidden="true">
        {GRADES.filter((grade) => share(grade) > 0).map((grade) => (
          <span key={grade} className={css[grade.toLowerCase()]} style={{ flexGrow: share(grade) }} />
        ))}
      </div>
      <table className={css.plain}>
        <caption className="visually-hidden">Billed cost by grade of confidence</caption>
        <tbody>
          {GRADES.map((grade, at) => (
            <tr key={grade}>
              <th scope="row">
                <span className={`${css.key} ${css[grade.toLowerCase()]}`} aria-hidden="true" />{' '}
                <Grade grade={grade} />
              </th>
              <td>{percent(share(grade))}</td>
              <td>
                <Money usd={summary.confidence_distribution[grade]} shown={footed[at]} />
              </td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">Billed, sum of 4 rows</th>
            <td />
            <td>
              <Money usd={billed} />
            </td>
          </tr>
        </tfoot>
      </table>
    </Card>
  );
}
