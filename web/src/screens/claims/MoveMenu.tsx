import { useState } from 'react';
import { useMay } from '../../app/session';
import { MenuButton } from '../../parts/forms/MenuButton';
import { MoveDialog } from './MoveDialog';
import { type ClaimStatus, type ListedClaim, movesOf, STATUS } from './words';

/** A button with the possible moves of a claim. Nothing for people who may not move it, and for finished claims. */
export function MoveMenu({ claim, label }: { claim: ListedClaim; label: string }) {
  const may = useMay();
  const [to, setTo] = useState<ClaimStatus>();
  const moves = movesOf(claim);
  if (moves.length === 0 || !may({ scope: 'claims:write', admin: true })) return null;
  return (
    <>
      <MenuButton
        label="Move"
        name={label}
        items={moves.map((status) => ({ id: status, label: STATUS[status].move }))}
        onAction={(status) => setTo(status as ClaimStatus)}
      />
      {to && <MoveDialog claim={claim} to={to} onClose={() => setTo(undefined)} />}
    </>
  );
}
