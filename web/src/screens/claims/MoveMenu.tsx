import { useState } from 'react';
import { Menu, MenuItem, MenuTrigger, Popover } from 'react-aria-components';
import { useMay } from '../../app/session';
import { Button } from '../../parts/forms/Button';
import { MoveDialog } from './MoveDialog';
import css from './MoveMenu.module.css';
import { type ClaimStatus, type ListedClaim, movesOf, STATUS } from './words';

/** A button with the possible moves of a claim. Nothing for people who may not move it, and for finished claims. */
export function MoveMenu({ claim, label }: { claim: ListedClaim; label: string }) {
  const may = useMay();
  const [to, setTo] = useState<ClaimStatus>();
  const moves = movesOf(claim);
  if (moves.length === 0 || !may({ scope: 'claims:write', admin: true })) return null;
  return (
    <>
      <MenuTrigger>
        <Button aria-label={label}>Move ▾</Button>
        <Popover className={css.popover}>
          <Menu className={css.menu} onAction={(key) => setTo(key as ClaimStatus)}>
            {moves.map((status) => (
              <MenuItem key={status} id={status} className={css.item}>
                {STATUS[status].move}
              </MenuItem>
            ))}
          </Menu>
        </Popover>
      </MenuTrigger>
      {to && <MoveDialog claim={claim} to={to} onClose={() => setTo(undefined)} />}
    </>
  );
}
