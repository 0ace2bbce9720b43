sdy.mesh @mesh = <["%ROOT a"=0, "stablehlo.case"=3]>

